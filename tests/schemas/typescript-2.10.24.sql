-- SDK: TypeScript, npm @dbos-inc/dbos-sdk 2.10.24
-- PostgreSQL: 13.23
-- How: the SDK was launched on an empty database, its rows were removed (but for the numbers of its
--      migrations), then pg_dump, without owners, rights and session settings.
-- Again: PYTHONPATH=tests python tests/schemas/record/typescript.py

CREATE SCHEMA dbos;

CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA public;

CREATE FUNCTION dbos.notifications_function() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
      DECLARE
          payload text := NEW.destination_uuid || '::' || NEW.topic;
      BEGIN
          PERFORM pg_notify('dbos_notifications_channel', payload);
          RETURN NEW;
      END;
      $$;

CREATE FUNCTION dbos.workflow_events_function() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
      DECLARE
          payload text := NEW.workflow_uuid || '::' || NEW.key;
      BEGIN
          PERFORM pg_notify('dbos_workflow_events_channel', payload);
          RETURN NEW;
      END;
      $$;

CREATE TABLE dbos.event_dispatch_kv (
    service_name text NOT NULL,
    workflow_fn_name text NOT NULL,
    key text NOT NULL,
    value text,
    update_seq numeric(38,0),
    update_time numeric(38,15)
);

CREATE TABLE dbos.notifications (
    destination_uuid text NOT NULL,
    topic text,
    message text NOT NULL,
    created_at_epoch_ms bigint DEFAULT ((date_part('epoch'::text, now()) * (1000)::double precision))::bigint NOT NULL,
    message_uuid text DEFAULT public.uuid_generate_v4() NOT NULL
);

CREATE TABLE dbos.operation_outputs (
    workflow_uuid text NOT NULL,
    function_id integer NOT NULL,
    output text,
    error text,
    function_name text DEFAULT ''::text NOT NULL,
    child_workflow_id text
);

CREATE TABLE dbos.scheduler_state (
    workflow_fn_name text NOT NULL,
    last_run_time bigint NOT NULL
);

CREATE TABLE dbos.transaction_outputs (
    workflow_uuid text NOT NULL,
    function_id integer NOT NULL,
    output text,
    error text,
    txn_id text,
    txn_snapshot text NOT NULL,
    created_at bigint DEFAULT ((date_part('epoch'::text, now()) * (1000)::double precision))::bigint NOT NULL,
    function_name text DEFAULT ''::text NOT NULL
);

CREATE TABLE dbos.workflow_events (
    workflow_uuid text NOT NULL,
    key text NOT NULL,
    value text NOT NULL
);

CREATE TABLE dbos.workflow_inputs (
    workflow_uuid text NOT NULL,
    inputs text NOT NULL
);

CREATE TABLE dbos.workflow_queue (
    queue_name text NOT NULL,
    workflow_uuid text NOT NULL,
    created_at_epoch_ms bigint DEFAULT ((date_part('epoch'::text, now()) * (1000)::double precision))::bigint NOT NULL,
    started_at_epoch_ms bigint,
    completed_at_epoch_ms bigint,
    executor_id text,
    deduplication_id text,
    priority integer DEFAULT 0 NOT NULL
);

CREATE TABLE dbos.workflow_status (
    workflow_uuid text NOT NULL,
    status text,
    name text,
    authenticated_user text,
    assumed_role text,
    authenticated_roles text,
    request text,
    output text,
    error text,
    executor_id text,
    created_at bigint DEFAULT ((date_part('epoch'::text, now()) * (1000)::double precision))::bigint NOT NULL,
    updated_at bigint DEFAULT ((date_part('epoch'::text, now()) * (1000)::double precision))::bigint NOT NULL,
    application_version text,
    application_id text,
    class_name character varying(255) DEFAULT NULL::character varying,
    config_name character varying(255) DEFAULT NULL::character varying,
    recovery_attempts bigint DEFAULT '0'::bigint,
    queue_name text,
    workflow_timeout_ms bigint,
    workflow_deadline_epoch_ms bigint,
    inputs text,
    started_at_epoch_ms bigint,
    deduplication_id text,
    priority integer DEFAULT 0 NOT NULL
);

CREATE TABLE public.knex_migrations (
    id integer NOT NULL,
    name character varying(255),
    batch integer,
    migration_time timestamp with time zone
);

CREATE SEQUENCE public.knex_migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.knex_migrations_id_seq OWNED BY public.knex_migrations.id;

CREATE TABLE public.knex_migrations_lock (
    index integer NOT NULL,
    is_locked integer
);

CREATE SEQUENCE public.knex_migrations_lock_index_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.knex_migrations_lock_index_seq OWNED BY public.knex_migrations_lock.index;

ALTER TABLE ONLY public.knex_migrations ALTER COLUMN id SET DEFAULT nextval('public.knex_migrations_id_seq'::regclass);

ALTER TABLE ONLY public.knex_migrations_lock ALTER COLUMN index SET DEFAULT nextval('public.knex_migrations_lock_index_seq'::regclass);

INSERT INTO public.knex_migrations VALUES (1, '20240123182943_schema.js', 1, '2026-11-30 20:41:47.338+00');
INSERT INTO public.knex_migrations VALUES (2, '20240123183021_tables.js', 1, '2026-11-30 20:41:47.359+00');
INSERT INTO public.knex_migrations VALUES (3, '20240123183025_indexes.js', 1, '2026-11-30 20:41:47.362+00');
INSERT INTO public.knex_migrations VALUES (4, '20240123183030_triggers.js', 1, '2026-11-30 20:41:47.365+00');
INSERT INTO public.knex_migrations VALUES (5, '20240124015239_status_timestamp.js', 1, '2026-11-30 20:41:47.368+00');
INSERT INTO public.knex_migrations VALUES (6, '20240201213211_replica_identity.js', 1, '2026-11-30 20:41:47.376+00');
INSERT INTO public.knex_migrations VALUES (7, '20240205223925_foreign_keys.js', 1, '2026-11-30 20:41:47.384+00');
INSERT INTO public.knex_migrations VALUES (8, '20240207192338_executor_id_index.js', 1, '2026-11-30 20:41:47.386+00');
INSERT INTO public.knex_migrations VALUES (9, '20240430090000_tables.js', 1, '2026-11-30 20:41:47.389+00');
INSERT INTO public.knex_migrations VALUES (10, '20240516004341_application_version.js', 1, '2026-11-30 20:41:47.391+00');
INSERT INTO public.knex_migrations VALUES (11, '20240517000000_status_class_config.js', 1, '2026-11-30 20:41:47.393+00');
INSERT INTO public.knex_migrations VALUES (12, '20240621000000_workflow_tries.js', 1, '2026-11-30 20:41:47.395+00');
INSERT INTO public.knex_migrations VALUES (13, '20240924000000_workflowqueue.js', 1, '2026-11-30 20:41:47.401+00');
INSERT INTO public.knex_migrations VALUES (14, '20241009150000_event_dispatch_kv.js', 1, '2026-11-30 20:41:47.405+00');
INSERT INTO public.knex_migrations VALUES (15, '20250312171547_function_name_op_outputs.js', 1, '2026-11-30 20:41:47.407+00');
INSERT INTO public.knex_migrations VALUES (16, '20250319190617_add_childid_opoutputs.js', 1, '2026-11-30 20:41:47.408+00');
INSERT INTO public.knex_migrations VALUES (17, '20252101000000_workflow_queues_executor_id.js', 1, '2026-11-30 20:41:47.409+00');
INSERT INTO public.knex_migrations VALUES (18, '20252501190959_queue_dedup_id.js', 1, '2026-11-30 20:41:47.411+00');
INSERT INTO public.knex_migrations VALUES (19, '20252505000000_workflow_timeout.js', 1, '2026-11-30 20:41:47.413+00');
INSERT INTO public.knex_migrations VALUES (20, '20252512000000_queue_priority.js', 1, '2026-11-30 20:41:47.414+00');
INSERT INTO public.knex_migrations VALUES (21, '20252523000000_consolidate_inputs.js', 1, '2026-11-30 20:41:47.416+00');
INSERT INTO public.knex_migrations VALUES (22, '20252528000000_consolidate_queues.js', 1, '2026-11-30 20:41:47.42+00');

INSERT INTO public.knex_migrations_lock VALUES (1, 0);

SELECT pg_catalog.setval('public.knex_migrations_id_seq', 22, true);

SELECT pg_catalog.setval('public.knex_migrations_lock_index_seq', 1, true);

ALTER TABLE ONLY dbos.event_dispatch_kv
    ADD CONSTRAINT event_dispatch_kv_pkey PRIMARY KEY (service_name, workflow_fn_name, key);

ALTER TABLE ONLY dbos.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (message_uuid);

ALTER TABLE ONLY dbos.operation_outputs
    ADD CONSTRAINT operation_outputs_pkey PRIMARY KEY (workflow_uuid, function_id);

ALTER TABLE ONLY dbos.scheduler_state
    ADD CONSTRAINT scheduler_state_pkey PRIMARY KEY (workflow_fn_name);

ALTER TABLE ONLY dbos.transaction_outputs
    ADD CONSTRAINT transaction_outputs_pkey PRIMARY KEY (workflow_uuid, function_id);

ALTER TABLE ONLY dbos.workflow_status
    ADD CONSTRAINT uq_workflow_status_queue_name_dedup_id UNIQUE (queue_name, deduplication_id);

ALTER TABLE ONLY dbos.workflow_events
    ADD CONSTRAINT workflow_events_pkey PRIMARY KEY (workflow_uuid, key);

ALTER TABLE ONLY dbos.workflow_inputs
    ADD CONSTRAINT workflow_inputs_pkey PRIMARY KEY (workflow_uuid);

ALTER TABLE ONLY dbos.workflow_queue
    ADD CONSTRAINT workflow_queue_pkey PRIMARY KEY (workflow_uuid);

ALTER TABLE ONLY dbos.workflow_queue
    ADD CONSTRAINT workflow_queue_queue_name_deduplication_id_unique UNIQUE (queue_name, deduplication_id);

ALTER TABLE ONLY dbos.workflow_status
    ADD CONSTRAINT workflow_status_pkey PRIMARY KEY (workflow_uuid);

ALTER TABLE ONLY public.knex_migrations_lock
    ADD CONSTRAINT knex_migrations_lock_pkey PRIMARY KEY (index);

ALTER TABLE ONLY public.knex_migrations
    ADD CONSTRAINT knex_migrations_pkey PRIMARY KEY (id);

CREATE INDEX idx_workflow_topic ON dbos.notifications USING btree (destination_uuid, topic);

CREATE INDEX transaction_outputs_created_at_index ON dbos.transaction_outputs USING btree (created_at);

CREATE INDEX workflow_status_created_at_index ON dbos.workflow_status USING btree (created_at);

CREATE INDEX workflow_status_executor_id_index ON dbos.workflow_status USING btree (executor_id);

CREATE INDEX workflow_status_status_index ON dbos.workflow_status USING btree (status);

CREATE TRIGGER dbos_notifications_trigger AFTER INSERT ON dbos.notifications FOR EACH ROW EXECUTE FUNCTION dbos.notifications_function();

CREATE TRIGGER dbos_workflow_events_trigger AFTER INSERT ON dbos.workflow_events FOR EACH ROW EXECUTE FUNCTION dbos.workflow_events_function();

ALTER TABLE ONLY dbos.notifications
    ADD CONSTRAINT notifications_destination_uuid_foreign FOREIGN KEY (destination_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;

ALTER TABLE ONLY dbos.operation_outputs
    ADD CONSTRAINT operation_outputs_workflow_uuid_foreign FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;

ALTER TABLE ONLY dbos.workflow_events
    ADD CONSTRAINT workflow_events_workflow_uuid_foreign FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;

ALTER TABLE ONLY dbos.workflow_inputs
    ADD CONSTRAINT workflow_inputs_workflow_uuid_foreign FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;

ALTER TABLE ONLY dbos.workflow_queue
    ADD CONSTRAINT workflow_queue_workflow_uuid_foreign FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status(workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE;
