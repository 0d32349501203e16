"use strict";
// Sorts a table by the clicked column: by number where cells have one (unknown ones last), else by text.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.v;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const x = key(a), y = key(b);
        if (x === undefined && y === undefined) {
          const order = a.cells[column].textContent.localeCompare(b.cells[column].textContent);
          return down ? -order : order;
        }
        if (x === undefined || y === undefined) return x === undefined ? 1 : -1;
        return down ? y - x : x - y;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
