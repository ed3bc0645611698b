package services;

/** An ordinary error, after which the attempt or the step is to be repeated. */
final class Deliberate extends RuntimeException {
  private static final long serialVersionUID = 1;

  Deliberate(String message) {
    super(message);
  }
}
