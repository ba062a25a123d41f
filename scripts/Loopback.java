import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;

/**
 * Starts DynamoDB Local with its own options, but on the loopback interface alone. It has no
 * option for the address, and listens on all interfaces otherwise.
 */
final class Loopback {
	public static void main(String[] options) throws Exception {
		var local = ServerRunner.createServerFromCommandLineArgs(options);
		var field = local.getClass().getDeclaredField("server");
		field.setAccessible(true);
		var connector = (ServerConnector) ((Server) field.get(local)).getConnectors()[0];
		connector.setHost("127.0.0.1");
		local.safeStart();
		System.out.println("Listening on 127.0.0.1:" + connector.getLocalPort());
		local.join();
	}
}
