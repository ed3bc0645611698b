/** Batches of more invocations than this are confirmed by typing their number. */
const large = 100

/**
 * What to type before a batch operation is possible: the number of invocations, or the name of the operation if the number is not known. Undefined if a click
 * is enough, which is the case for operations that can be undone and for a few invocations that the user has selected one by one.
 */
export function batchConfirmation(operation: string, of: { danger: boolean; count?: number | undefined; filtered: boolean }): string | undefined {
  if (!of.danger || of.count === 1) return undefined
  if (of.count === undefined) return operation
  return of.filtered || of.count > large ? String(of.count) : undefined
}
