import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/**
 * A small Neo4j community server on the loopback address: {@code Neo4jServer HOME PORT PLUGINS OWNER}. When the
 * process OWNER ends, so does the server (0: it has none).
 */
public class Neo4jServer {
  public static void main(String[] args) throws Exception {
    SocketAddress address = new SocketAddress("127.0.0.1", Integer.parseInt(args[1]));
    DatabaseManagementService service =
        new DatabaseManagementServiceBuilder(Path.of(args[0]))
            .setConfig(BoltConnector.enabled, true)
            .setConfig(BoltConnector.listen_address, address)
            .setConfig(BoltConnector.advertised_address, address)
            .setConfig(BoltConnector.server_bolt_telemetry_enabled, false)
            .setConfig(GraphDatabaseSettings.udc_enabled, false)
            .setConfig(GraphDatabaseSettings.plugin_dir, Path.of(args[2]))
            .setConfig(GraphDatabaseSettings.procedure_unrestricted, List.of("apoc.*"))
            .setConfig(GraphDatabaseSettings.auth_enabled, false)
            .setConfig(GraphDatabaseSettings.pagecache_memory, 256L << 20)
            .setConfig(GraphDatabaseSettings.preallocate_logical_logs, false)
            .setConfig(GraphDatabaseSettings.query_cache_size, 10_000)
            .setConfig(GraphDatabaseSettings.cypher_min_replan_interval, Duration.ofDays(1))
            .build();
    Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
    ProcessHandle.of(Long.parseLong(args[3])).ifPresent(owner -> owner.onExit().thenRun(() -> System.exit(0)));
    System.out.println("ready on bolt://" + address);
    Thread.currentThread().join();
  }
}
