"""The crash suite: the whole service as real processes, killed, cut off and starved while callers send.

run            a run: the service under load, one fault after another, the books looked at after each
faults         the kinds of fault; `faults_of_…` say how each is brought about
service        the processes: both servers, a proxy before each, web, two workers, beat
cluster        a PostgreSQL with its disks; `clock` sets one's clock
callers        who sends, repeats and notes in `intents` what was answered
operators      who refills, registers, suspends and resumes meanwhile
snapshot       the invariants, from one moment of the database
poison         a recipient whose transaction PostgreSQL refuses, or ends the session for, until it is cured
planted_…      pauses and faults that only these tests put into the processes
soak           the long run, as a command
"""
