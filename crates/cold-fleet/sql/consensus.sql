-- Pages that at least the wanted share of the starts needed, in the order of their mean need time.
SELECT program, version, scenario, path, build_id, size, first_page, pages, used, starts, need, around,
       sections
FROM agreed
ORDER BY program, version, scenario, need, path, first_page
