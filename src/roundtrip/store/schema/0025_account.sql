-- One word for an account everywhere in the database. The wire keeps "mite".
ALTER TABLE accounts.mite RENAME TO account;

DO $$
DECLARE
    renamed record;
BEGIN
    FOR renamed IN
        SELECT c.table_name FROM information_schema.columns c
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE c.table_schema = 'accounts' AND c.column_name = 'mite_id' AND t.table_type = 'BASE TABLE'
    LOOP
        EXECUTE format('ALTER TABLE accounts.%I RENAME COLUMN mite_id TO account_id', renamed.table_name);
    END LOOP;
    FOR renamed IN
        SELECT conrelid::regclass AS owner, conname AS name FROM pg_constraint
        WHERE connamespace = 'accounts'::regnamespace AND conname LIKE '%mite%' AND contype <> 'n'
    LOOP
        EXECUTE format(
            'ALTER TABLE %s RENAME CONSTRAINT %I TO %I',
            renamed.owner, renamed.name, replace(renamed.name, 'mite', 'account')
        );
    END LOOP;
    FOR renamed IN
        SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'accounts'::regnamespace AND relkind = 'i' AND relname LIKE '%mite%'
    LOOP
        EXECUTE format('ALTER INDEX accounts.%I RENAME TO %I', renamed.name, replace(renamed.name, 'mite', 'account'));
    END LOOP;
END
$$;

ALTER SEQUENCE IF EXISTS accounts.mite_id_seq RENAME TO account_id_seq;
