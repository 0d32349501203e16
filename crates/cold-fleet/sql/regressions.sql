-- Time to ready of undisturbed cold starts by version, on one class of machine, against the version before it (by
-- first sight).
-- The interval of the median is that between two order statistics, 95 % whatever the distribution (Conover, Practical
-- Nonparametric Statistics, 3.2); there is none for fewer than 6 starts.
WITH ranked AS (
  SELECT program, scenario, machine, version, started, ready,
         row_number() OVER (PARTITION BY program, scenario, machine, version ORDER BY ready, start) AS place,
         count(*) OVER (PARTITION BY program, scenario, machine, version) AS n
  FROM chosen
  WHERE state = 'cold' AND undisturbed
), levels AS (
  SELECT program, scenario, machine, version, n, min(started) AS first_at,
         avg(CASE WHEN place >= n / 2.0 AND place <= n / 2.0 + 1 THEN CAST(ready AS DOUBLE) END) AS median,
         max(CASE WHEN n >= 6 AND place = greatest(1, floor(n / 2.0 - 0.98 * sqrt(n))) THEN ready END) AS low,
         max(CASE WHEN n >= 6 AND place = least(n, ceil(n / 2.0 + 1 + 0.98 * sqrt(n))) THEN ready END) AS high
  FROM ranked
  GROUP BY program, scenario, machine, version, n
), compared AS (
  SELECT program, scenario, machine, version, n, first_at, median, low, high,
         lag(version) OVER older AS before, lag(median) OVER older AS before_median,
         lag(low) OVER older AS before_low, lag(high) OVER older AS before_high
  FROM levels
  WINDOW older AS (PARTITION BY program, scenario, machine ORDER BY first_at, version)
)
SELECT program, scenario, machine, version, CAST(n AS BIGINT) AS starts, median,
       CAST(low AS BIGINT) AS low, CAST(high AS BIGINT) AS high, before, median / before_median AS ratio,
       CASE WHEN before IS NULL THEN 'first'
            WHEN low IS NULL OR before_low IS NULL THEN 'too few starts'
            WHEN low > before_high THEN 'slower'
            WHEN high < before_low THEN 'faster'
            ELSE 'no difference proved' END AS verdict
FROM compared
ORDER BY program, scenario, machine, first_at, version
