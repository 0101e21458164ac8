// Launches DBOS for TypeScript of any version from 2.10 on, so that it makes its system tables.
import { DBOS } from '@dbos-inc/dbos-sdk';

const url = process.argv[2];
const database = new URL(url).pathname.slice(1);
DBOS.setConfig({
  name: 'harness',
  executorID: 'harness-executor',
  applicationVersion: 'harness-version',
  runAdminServer: false,
  systemDatabaseUrl: url,
  // Before version 3: the application's database, with the system's name beside it.
  databaseUrl: url,
  sysDbName: database,
});
await DBOS.launch();
await DBOS.shutdown();
process.exit(0);
