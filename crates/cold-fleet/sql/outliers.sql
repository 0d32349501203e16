-- Classes of machines whose undisturbed cold starts take longer or shorter than those of the others: medians that are
-- further from the median of all classes than 3 scaled median absolute deviations (1.4826 of them are a standard deviation of a
-- normal distribution). Fewer than 3 classes cannot tell.
WITH classes AS (
  SELECT program, version, scenario, machine, count(*) AS starts, median(ready) AS level
  FROM chosen
  WHERE state = 'cold' AND undisturbed
  GROUP BY program, version, scenario, machine
), centres AS (
  SELECT program, version, scenario, count(*) AS classes, median(level) AS centre
  FROM classes
  GROUP BY program, version, scenario
), spreads AS (
  SELECT k.program, k.version, k.scenario, median(abs(k.level - e.centre)) * 1.4826 AS spread
  FROM classes k
  JOIN centres e ON e.program = k.program AND e.version = k.version AND e.scenario = k.scenario
  GROUP BY k.program, k.version, k.scenario
)
SELECT k.program, k.version, k.scenario, k.machine, CAST(k.starts AS BIGINT) AS starts,
       k.level AS median, e.centre AS all_median, k.level / e.centre AS ratio,
       CASE WHEN e.classes < 3 THEN 'too few classes'
            WHEN abs(k.level - e.centre) <= 3 * s.spread THEN 'as the others'
            WHEN k.level > e.centre THEN 'slower'
            ELSE 'faster' END AS verdict
FROM classes k
JOIN centres e ON e.program = k.program AND e.version = k.version AND e.scenario = k.scenario
JOIN spreads s ON s.program = k.program AND s.version = k.version AND s.scenario = k.scenario
ORDER BY k.program, k.version, k.scenario, ratio DESC, k.machine
