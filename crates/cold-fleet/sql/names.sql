-- Directories and names that at least the wanted share of the starts looked up.
WITH counted AS (
  SELECT program, version, scenario, count(*) AS starts
  FROM learnt
  GROUP BY program, version, scenario
), used AS (
  SELECT l.program, l.version, l.scenario, p.kind, p.path, count(DISTINCT p.start) AS used, min(p.need) AS need
  FROM learnt l JOIN pages p ON p.start = l.start
  WHERE p.kind <> 'regular'
  GROUP BY l.program, l.version, l.scenario, p.kind, p.path
)
SELECT u.program, u.version, u.scenario, u.kind, u.path,
       CAST(u.used AS BIGINT) AS used, CAST(c.starts AS BIGINT) AS starts, CAST(u.need AS BIGINT) AS need
FROM used u
JOIN counted c ON c.program = u.program AND c.version = u.version AND c.scenario = u.scenario
CROSS JOIN settings w
WHERE u.used >= w.share * c.starts
ORDER BY u.program, u.version, u.scenario, u.need, u.path, u.kind
