-- The starts that a question is about: recorded whole, of the wanted program, version, scenario, machine class.
SELECT s.*
FROM starts s CROSS JOIN settings w
WHERE s.whole
  AND (w.program = '' OR s.program = w.program)
  AND (w.version = '' OR s.version = w.version)
  AND (w.scenario = '' OR s.scenario = w.scenario)
  AND (w.machine = '' OR s.machine = w.machine)
