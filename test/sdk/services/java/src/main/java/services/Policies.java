package services;

import dev.restate.sdk.common.RetryPolicy;
import dev.restate.sdk.endpoint.definition.InvocationRetryPolicy;
import dev.restate.sdk.endpoint.definition.InvocationRetryPolicy.OnMaxAttempts;
import java.time.Duration;

/** The retry policies of what is meant to fail. */
final class Policies {
  private static final Duration QUICK = Duration.ofMillis(10);

  private Policies() {}

  /** Of a step, without a bound. A new one each time: the policies of the SDK are mutable. */
  static RetryPolicy step() {
    return RetryPolicy.exponential(QUICK, 2);
  }

  /** Of a service. */
  static InvocationRetryPolicy service() {
    return InvocationRetryPolicy.builder().initialInterval(QUICK).build();
  }

  /** Of a service whose delays do not grow. */
  static InvocationRetryPolicy steady() {
    return InvocationRetryPolicy.builder().initialInterval(QUICK).exponentiationFactor(1.0).build();
  }

  /** Of a service that fails three times at most. */
  static InvocationRetryPolicy thrice(OnMaxAttempts then) {
    return InvocationRetryPolicy.builder()
        .initialInterval(QUICK)
        .maxAttempts(3)
        .onMaxAttempts(then)
        .build();
  }
}
