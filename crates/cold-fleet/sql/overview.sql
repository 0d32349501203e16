-- What the dataset holds, by program.
SELECT program,
       CAST(count(*) AS BIGINT) AS starts,
       CAST(sum(CASE WHEN whole THEN 1 ELSE 0 END) AS BIGINT) AS whole,
       CAST(sum(CASE WHEN state = 'cold' AND undisturbed THEN 1 ELSE 0 END) AS BIGINT) AS cold,
       CAST(count(DISTINCT version) AS BIGINT) AS versions,
       CAST(count(DISTINCT scenario) AS BIGINT) AS scenarios,
       CAST(count(DISTINCT machine) AS BIGINT) AS machines,
       CAST(min(started) AS BIGINT) AS first_at,
       CAST(max(started) AS BIGINT) AS last_at
FROM starts
GROUP BY program
ORDER BY starts DESC, program
