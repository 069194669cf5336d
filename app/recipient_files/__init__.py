"""Reading lists of recipients: bytes in, rows out, each with its line and, if it cannot be used, the reason.

`text` opens a list: a sheet of a workbook, which `workbook_process` reads, or text, whose encoding it finds. Of a
workbook, `workbook_marks` and its neighbours find the hidden rows and the cells that mislead. `rows` finds the
delimiter and the heading, and reads the rows. `list_file` finds the columns and, with `misfits`, the rows that do not
fit. `cells` recognizes addresses and headings. `columns` makes an item from each row, and `recipients` makes the parts
and bad lines of a whole list. `pasted` separates pasted addresses. `writing` writes lists and workbooks.
"""
