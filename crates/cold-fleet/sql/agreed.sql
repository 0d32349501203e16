-- The runs that enough starts needed, without what starts with exact needs did without.
SELECT r.*
FROM runs r CROSS JOIN settings w
WHERE r.used >= w.share * r.starts AND NOT r.spare
