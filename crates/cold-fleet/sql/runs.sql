-- Pages that the same starts needed, as runs: how many starts needed them (used), of how many (starts), and the sum of
-- their need times. Each row of pages opens at its first page and closes behind its last. Between two such places the
-- number of open rows is the number of starts, because the rows of one start have no page in common.
WITH counted AS (
  SELECT program, version, scenario, count(*) AS starts
  FROM learnt
  GROUP BY program, version, scenario
), places AS (
  SELECT l.program, l.version, l.scenario, p.path, p.build_id, p.size,
         p.first_page AS page, 1 AS used, p.need AS need, CASE WHEN p.around THEN 1 ELSE 0 END AS around
  FROM learnt l JOIN pages p ON p.start = l.start
  WHERE p.kind = 'regular'
  UNION ALL
  SELECT l.program, l.version, l.scenario, p.path, p.build_id, p.size,
         p.first_page + p.pages, -1, -p.need, CASE WHEN p.around THEN -1 ELSE 0 END
  FROM learnt l JOIN pages p ON p.start = l.start
  WHERE p.kind = 'regular'
), changes AS (
  SELECT program, version, scenario, path, build_id, size, page,
         sum(used) AS used, sum(need) AS need, sum(around) AS around
  FROM places
  GROUP BY program, version, scenario, path, build_id, size, page
), opened AS (
  SELECT program, version, scenario, path, build_id, size, page AS first_page,
         (lead(page) OVER by_page) - page AS pages,
         sum(used) OVER by_page AS used, sum(need) OVER by_page AS need, sum(around) OVER by_page AS around
  FROM changes
  WINDOW by_page AS (PARTITION BY program, version, scenario, path, build_id, size ORDER BY page)
)
SELECT o.program, o.version, o.scenario, o.path, o.build_id, o.size, o.first_page, CAST(o.pages AS BIGINT) AS pages,
       CAST(o.used AS BIGINT) AS used, CAST(c.starts AS BIGINT) AS starts,
       CAST(floor(o.need / o.used) AS BIGINT) AS need, o.around = o.used AS around
FROM opened o
JOIN counted c ON c.program = o.program AND c.version = o.version AND c.scenario = o.scenario
WHERE o.used > 0
