-- The runs that enough starts needed.
SELECT r.*
FROM runs r CROSS JOIN settings w
WHERE r.used >= w.share * r.starts
