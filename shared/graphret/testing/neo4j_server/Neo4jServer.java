import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.connectors.BoltConnector.EncryptionLevel;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.configuration.ssl.SslPolicyConfig;
import org.neo4j.configuration.ssl.SslPolicyScope;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import sun.security.tools.keytool.Main;

/**
 * A small Neo4j community server on the loopback address: {@code Neo4jServer HOME PORT PLUGINS AUTH OWNER}. AUTH is
 * true or false; when the process OWNER ends, so does the server (0: it has none). It speaks TLS to who asks for it.
 */
public class Neo4jServer {
  private static final SslPolicyConfig TLS = SslPolicyConfig.forScope(SslPolicyScope.BOLT);

  public static void main(String[] args) throws Exception {
    SocketAddress address = new SocketAddress("127.0.0.1", Integer.parseInt(args[1]));
    DatabaseManagementService service =
        new DatabaseManagementServiceBuilder(Path.of(args[0]))
            .setConfig(BoltConnector.enabled, true)
            .setConfig(BoltConnector.listen_address, address)
            .setConfig(BoltConnector.advertised_address, address)
            .setConfig(BoltConnector.server_bolt_telemetry_enabled, false)
            .setConfig(BoltConnector.encryption_level, EncryptionLevel.OPTIONAL)
            .setConfig(TLS.enabled, true)
            .setConfig(TLS.base_directory, certificates(Path.of(args[0], "certificates")))
            .setConfig(GraphDatabaseSettings.udc_enabled, false)
            .setConfig(GraphDatabaseSettings.plugin_dir, Path.of(args[2]))
            .setConfig(GraphDatabaseSettings.procedure_unrestricted, List.of("apoc.*"))
            .setConfig(GraphDatabaseSettings.auth_enabled, Boolean.parseBoolean(args[3]))
            .setConfig(GraphDatabaseSettings.auth_max_failed_attempts, 0)
            .setConfig(GraphDatabaseSettings.pagecache_memory, 256L << 20)
            .setConfig(GraphDatabaseSettings.preallocate_logical_logs, false)
            .setConfig(GraphDatabaseSettings.query_cache_size, 10_000)
            .setConfig(GraphDatabaseSettings.cypher_min_replan_interval, Duration.ofDays(1))
            .build();
    Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
    ProcessHandle.of(Long.parseLong(args[4])).ifPresent(owner -> owner.onExit().thenRun(() -> System.exit(0)));
    System.out.println("ready on bolt://" + address);
    Thread.currentThread().join();
  }

  /** The folder, with a certificate that the server signed itself and its key, made if they are not there. */
  private static Path certificates(Path folder) throws Exception {
    Path certificate = folder.resolve("public.crt");
    if (Files.exists(certificate)) {
      return folder;
    }
    Files.createDirectories(folder);
    Path kept = folder.resolve("keys.p12");
    String password = "only for a moment";
    Main.main( // keytool, without a Java of its own
        new String[] {
          "-genkeypair", "-alias", "bolt", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "3650",
          "-dname", "CN=graphret tests", "-ext", "SAN=dns:localhost,ip:127.0.0.1",
          "-storetype", "PKCS12", "-keystore", kept.toString(), "-storepass", password
        });
    KeyStore made = KeyStore.getInstance(kept.toFile(), password.toCharArray());
    Files.delete(kept);
    write(folder.resolve("private.key"), "PRIVATE KEY", made.getKey("bolt", password.toCharArray()).getEncoded());
    write(certificate, "CERTIFICATE", made.getCertificate("bolt").getEncoded());
    return folder;
  }

  private static void write(Path file, String what, byte[] content) throws Exception {
    String text = Base64.getMimeEncoder().encodeToString(content);
    Files.writeString(file, "-----BEGIN " + what + "-----\n" + text + "\n-----END " + what + "-----\n");
  }
}
