-- One consistent view for all statements of a refresh. Settings end with the transaction, so they are safe
-- behind a transaction-pooling PgBouncer. Only bitmap scans are left: they visit each page of live work once
-- and never walk the finished rows, even on a table without statistics. Groups are few, so hashing beats sorting, which
-- stale statistics would choose. Compiling costs more than it saves.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL statement_timeout = '{statement_timeout_ms}ms';
SET LOCAL enable_seqscan = off;
SET LOCAL enable_indexscan = off;
SET LOCAL enable_sort = off;
SET LOCAL jit = off
