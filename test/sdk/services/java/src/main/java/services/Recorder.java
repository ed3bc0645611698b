package services;

import dev.restate.sdk.Context;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

/** Tells the test of side effects and waits for it. */
final class Recorder {
  private static final String BASE = System.getenv("RECORDER");
  // Version 1.1 at once: an attempt to upgrade would only cost time.
  private static final HttpClient CLIENT =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  private Recorder() {}

  /** Reports a side effect and returns how many were reported under this name. */
  static int record(String name, String value) throws IOException, InterruptedException {
    return Integer.parseInt(
        ask(request("/record/" + name).POST(BodyPublishers.ofString(value)).build()));
  }

  /** Returns when the test has opened the gate; an empty name means no gate. */
  static void await(String gate) throws IOException, InterruptedException {
    if (!gate.isEmpty()) {
      ask(request("/gate/" + gate).build());
    }
  }

  /**
   * Reports an attempt and fails the first few.
   *
   * @return the number of the attempt
   */
  static int attempt(String name, String value, int fail) throws IOException, InterruptedException {
    int n = record(name, value);
    if (n <= fail) {
      throw new Deliberate("attempt " + n + " is meant to fail");
    }
    return n;
  }

  /** Reports values under one name in one step. */
  static void tell(Context ctx, String step, String name, String... values) {
    ctx.run(
        step,
        () -> {
          for (String value : values) {
            record(name, value);
          }
        });
  }

  private static HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(BASE + path));
  }

  private static String ask(HttpRequest request) throws IOException, InterruptedException {
    HttpResponse<String> response = CLIENT.send(request, BodyHandlers.ofString());
    if (response.statusCode() != 200) {
      throw new IOException("recorder: " + response.statusCode() + " " + response.body());
    }
    return response.body();
  }
}
