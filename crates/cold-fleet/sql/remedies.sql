-- What the advice of all undisturbed cold starts would bring together.
WITH counted AS (
  SELECT program, count(*) AS starts, sum(ready) AS ready FROM chosen WHERE state = 'cold' AND undisturbed GROUP BY program
)
SELECT c.program, r.remedy,
       CAST(count(DISTINCT r.start) AS BIGINT) AS helped,
       CAST(max(n.starts) AS BIGINT) AS starts,
       CAST(sum(coalesce(r.saves, 0)) AS BIGINT) AS saves,
       median(r.saves) AS saves_each,
       sum(coalesce(r.saves, 0)) / CAST(max(n.ready) AS DOUBLE) AS share
FROM chosen c
JOIN remedies r ON r.start = c.start
JOIN counted n ON n.program = c.program
WHERE c.state = 'cold' AND c.undisturbed
GROUP BY c.program, r.remedy
ORDER BY saves DESC, c.program, r.remedy
