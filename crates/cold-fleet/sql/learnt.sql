-- The chosen starts that teach: all but the held-out part.
SELECT c.*
FROM chosen c CROSS JOIN settings w
WHERE c.fold <> w.hold_out
