-- How much the starts agree about each file: pages that all needed over pages that any needed (Jaccard's index of all
-- their sets), and pages that the wanted share needed over the mean of what each needed.
SELECT r.program, r.version, r.scenario, r.path, r.build_id, r.size,
       CAST(max(r.starts) AS BIGINT) AS starts,
       CAST(sum(r.pages) AS BIGINT) AS any_pages,
       CAST(sum(CASE WHEN r.used = r.starts AND NOT r.spare THEN r.pages ELSE 0 END) AS BIGINT) AS all_pages,
       CAST(sum(CASE WHEN r.used >= w.share * r.starts AND NOT r.spare THEN r.pages ELSE 0 END) AS BIGINT) AS agreed_pages,
       CAST(sum(r.pages * r.used) AS BIGINT) AS needed_pages,
       sum(CASE WHEN r.used = r.starts AND NOT r.spare THEN r.pages ELSE 0 END) / CAST(sum(r.pages) AS DOUBLE) AS jaccard
FROM runs r CROSS JOIN settings w
GROUP BY r.program, r.version, r.scenario, r.path, r.build_id, r.size
ORDER BY r.program, r.version, r.scenario, needed_pages DESC, r.path, r.build_id
