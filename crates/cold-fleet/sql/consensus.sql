-- Pages that at least the wanted share of the starts needed, in the order of their mean need time. Spare ones are of files
-- that starts with exact needs used without them: another build of such a file may have moved needed code there.
SELECT program, version, scenario, path, build_id, size, first_page, pages, used, starts, need, around, spare
FROM agreed
ORDER BY program, version, scenario, need, path, first_page
