import dev.dbos.transact.DBOS;
import dev.dbos.transact.config.DBOSConfig;

/** Launches DBOS for Java, so that it makes its system tables. */
public class Launch {
  /** Takes a JDBC URL, which carries user and password. */
  public static void main(String[] arguments) {
    DBOSConfig config =
        DBOSConfig.defaults("harness")
            .withDatabaseUrl(arguments[0])
            .withDbUser(arguments[1])
            .withDbPassword(arguments[2])
            .withAppVersion("harness-version")
            .withExecutorId("harness-executor");
    try (DBOS dbos = new DBOS(config)) {
      dbos.launch();
    }
    System.exit(0);
  }
}
