"""A list of recipients as people have them: ten kinds of faults, and three good lines."""

FAULTY_LIST = """name,e-mail,amount,reference,manager_email
Ann,ann@example.com,10,r-1,boss@example.com
Bob,bob@example.com,20,r-2,boss@example.com
No address,,5,r-3,boss@example.com
Not one,carl.example.com,5,r-4,boss@example.com
Two,"dora@example.com; ed@example.com",5,r-5,boss@example.com
Again,Ann@Example.com,5,,boss@example.com
No amount,fay@example.com,,r-7,boss@example.com
Nothing,gil@example.com,0,r-8,boss@example.com
Words,hal@example.com,ten,r-9,boss@example.com
Same reference,ida@example.com,5,r-2,boss@example.com
Too wide,jan@example.com,5,r-11,boss@example.com,more
Formula,=cmd@example.com,5,r-12,boss@example.com
Kim,kim@example.com,30,r-13,boss@example.com
"""
