-- What the consensus of the other starts is worth to those held out: pages that they needed, of these covered, and
-- what a plan of it would read for each of them.
WITH held AS (
  SELECT c.* FROM chosen c CROSS JOIN settings w WHERE c.fold = w.hold_out
), planned AS (
  SELECT program, version, scenario, sum(pages) AS pages, max(starts) AS starts
  FROM agreed
  GROUP BY program, version, scenario
), needed AS (
  SELECT h.program, h.version, h.scenario, h.start, sum(p.pages) AS needed
  FROM held h JOIN pages p ON p.start = h.start
  WHERE p.kind = 'regular'
  GROUP BY h.program, h.version, h.scenario, h.start
), covered AS (
  SELECT h.start,
         sum(least(p.first_page + p.pages, a.first_page + a.pages) - greatest(p.first_page, a.first_page)) AS covered
  FROM held h
  JOIN pages p ON p.start = h.start
  JOIN agreed a ON a.program = h.program AND a.version = h.version AND a.scenario = h.scenario
    AND a.path = p.path AND a.build_id = p.build_id AND a.size = p.size
    AND a.first_page < p.first_page + p.pages AND p.first_page < a.first_page + a.pages
  WHERE p.kind = 'regular'
  GROUP BY h.start
)
SELECT n.program, n.version, n.scenario,
       CAST(max(p.starts) AS BIGINT) AS learnt_from,
       CAST(count(*) AS BIGINT) AS held_out,
       CAST(sum(n.needed) AS BIGINT) AS needed_pages,
       CAST(sum(coalesce(c.covered, 0)) AS BIGINT) AS covered_pages,
       CAST(sum(p.pages) AS BIGINT) AS planned_pages,
       sum(coalesce(c.covered, 0)) / CAST(sum(n.needed) AS DOUBLE) AS coverage,
       1 - sum(coalesce(c.covered, 0)) / CAST(sum(p.pages) AS DOUBLE) AS in_vain
FROM needed n
JOIN planned p ON p.program = n.program AND p.version = n.version AND p.scenario = n.scenario
LEFT JOIN covered c ON c.start = n.start
GROUP BY n.program, n.version, n.scenario
ORDER BY n.program, n.version, n.scenario
