-- What was started: one row per program, version and scenario, or several where starts disagree about the executable.
SELECT program, version, scenario, executable, executable_build_id, executable_size, script,
       CAST(count(*) AS BIGINT) AS starts,
       CAST(sum(CASE WHEN state = 'cold' THEN 1 ELSE 0 END) AS BIGINT) AS cold,
       max(tier) AS tier,
       CAST(min(CASE WHEN exact THEN 1 ELSE 0 END) AS BIGINT) AS all_exact,
       CAST(min(CASE WHEN one_thread THEN 1 ELSE 0 END) AS BIGINT) AS all_one_thread,
       CAST(min(started) AS BIGINT) AS first_at,
       CAST(max(started) AS BIGINT) AS last_at,
       CAST(min(computing) AS BIGINT) AS computing
FROM learnt
GROUP BY program, version, scenario, executable, executable_build_id, executable_size, script
ORDER BY program, version, scenario, starts DESC, executable, executable_build_id, script
