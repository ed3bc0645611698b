package services;

import dev.restate.sdk.auth.signing.RestateRequestIdentityVerifier;
import dev.restate.sdk.endpoint.Endpoint;
import dev.restate.sdk.endpoint.definition.InvocationRetryPolicy.OnMaxAttempts;
import dev.restate.sdk.endpoint.definition.ServiceDefinition.Configurator;
import dev.restate.sdk.http.vertx.HttpEndpointRequestHandler;
import dev.restate.sdk.http.vertx.RestateHttpServer;
import java.util.function.Consumer;

/**
 * The test service endpoint written with the Java SDK. It listens on the port in PORT and reports
 * side effects to the recorder at RECORDER.
 *
 * <p>LAZY_STATE=1 announces lazy state for its objects, BIDI=0 announces request-response mode,
 * VERSION is what Versioned tells, and with IDENTITY_KEY only requests that are signed for that key
 * are accepted. VERBOSE lets it log.
 */
public final class Main {
  private Main() {}

  public static void main(String[] args) {
    configureLogging(!env("VERBOSE").isEmpty());
    var handler = HttpEndpointRequestHandler.fromEndpoint(endpoint(), env("BIDI").equals("0"));
    RestateHttpServer.fromHandler(handler)
        .listen(Integer.parseInt(env("PORT")), "127.0.0.1")
        .onFailure(
            e -> {
              e.printStackTrace();
              System.exit(1);
            });
  }

  /**
   * Lets the simple logger of the logging interface say something or nothing: failed attempts are
   * part of the tests. Must come before the first logger is made.
   */
  private static void configureLogging(boolean verbose) {
    System.setProperty("org.apache.logging.log4j.simplelog.level", verbose ? "INFO" : "OFF");
    // That there is no other logger is as intended.
    System.setProperty("log4j2.StatusLogger.level", "OFF");
    System.setProperty("slf4j.internal.verbosity", "ERROR");
  }

  private static Endpoint endpoint() {
    boolean lazy = env("LAZY_STATE").equals("1");
    Consumer<Configurator> object = c -> c.enableLazyState(lazy);
    var endpoint =
        Endpoint.bind(new Echo())
            .bind(new Steps(), c -> c.invocationRetryPolicy(Policies.service()))
            .bind(new Caller())
            .bind(new Utils())
            .bind(new Store(), object.andThen(c -> c.invocationRetryPolicy(Policies.service())))
            .bind(new Queue(), object)
            .bind(new Awakeables())
            .bind(new Holder(), object)
            .bind(new Flow(), object)
            .bind(new Cancel(), object)
            .bind(new Tree(), object)
            .bind(new Drift(), object.andThen(c -> c.invocationRetryPolicy(Policies.steady())))
            .bind(new Killed(), c -> c.invocationRetryPolicy(Policies.thrice(OnMaxAttempts.KILL)))
            .bind(new Paused(), c -> c.invocationRetryPolicy(Policies.thrice(OnMaxAttempts.PAUSE)))
            .bind(new Versioned(), object)
            .bind(new Interpreter(), object);
    if (!env("IDENTITY_KEY").isEmpty()) {
      endpoint.withRequestIdentityVerifier(
          RestateRequestIdentityVerifier.fromKey(env("IDENTITY_KEY")));
    }
    return endpoint.build();
  }

  /** Returns an environment variable, empty if unset. */
  static String env(String name) {
    String value = System.getenv(name);
    return value == null ? "" : value;
  }
}
