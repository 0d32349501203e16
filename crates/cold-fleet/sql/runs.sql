-- Pages that the same starts needed, as runs: how many starts needed them (used), of how many that could show it (starts),
-- and the mean of their need times. What is only mapped around a fault, a start with exact needs cannot show. Where such
-- starts used the file without these pages, they are spare.
-- Each row of pages opens at its first page and closes behind its last. Between two such places the number of open rows is
-- the number of starts, because the rows of one start have no page in common.
WITH counted AS (
  SELECT program, version, scenario, count(*) AS starts, sum(CASE WHEN exact THEN 0 ELSE 1 END) AS usual
  FROM learnt
  GROUP BY program, version, scenario
), places AS (
  SELECT l.program, l.version, l.scenario, p.path, p.build_id, p.size,
         p.first_page AS page, 1 AS used, p.need AS need, CASE WHEN p.around THEN 1 ELSE 0 END AS around,
         CASE WHEN l.exact THEN 1 ELSE 0 END AS exact, p.sections
  FROM learnt l JOIN pages p ON p.start = l.start
  WHERE p.kind = 'regular'
  UNION ALL
  SELECT l.program, l.version, l.scenario, p.path, p.build_id, p.size,
         p.first_page + p.pages, -1, -p.need, CASE WHEN p.around THEN -1 ELSE 0 END,
         CASE WHEN l.exact THEN -1 ELSE 0 END, p.sections
  FROM learnt l JOIN pages p ON p.start = l.start
  WHERE p.kind = 'regular'
), changes AS (
  SELECT program, version, scenario, path, build_id, size, page,
         sum(used) AS used, sum(need) AS need, sum(around) AS around, sum(exact) AS exact,
         max(exact) AS any_exact, max(sections) AS sections
  FROM places
  GROUP BY program, version, scenario, path, build_id, size, page
), opened AS (
  SELECT program, version, scenario, path, build_id, size, page AS first_page,
         (lead(page) OVER by_page) - page AS pages,
         sum(used) OVER by_page AS used, sum(need) OVER by_page AS need, sum(around) OVER by_page AS around,
         sum(exact) OVER by_page AS exact,
         max(any_exact) OVER (PARTITION BY program, version, scenario, path, build_id, size) = 1 AS known,
         max(sections) OVER (PARTITION BY program, version, scenario, path, build_id, size) AS sections
  FROM changes
  WINDOW by_page AS (PARTITION BY program, version, scenario, path, build_id, size ORDER BY page)
)
SELECT o.program, o.version, o.scenario, o.path, o.build_id, o.size, o.first_page, CAST(o.pages AS BIGINT) AS pages,
       CAST(o.used AS BIGINT) AS used,
       CAST(CASE WHEN o.exact = 0 AND o.around = o.used THEN c.usual ELSE c.starts END AS BIGINT) AS starts,
       CAST(floor(o.need / o.used) AS BIGINT) AS need, o.around = o.used AS around,
       o.exact = 0 AND o.around = o.used AND o.known AS spare, o.sections
FROM opened o
JOIN counted c ON c.program = o.program AND c.version = o.version AND c.scenario = o.scenario
WHERE o.used > 0
