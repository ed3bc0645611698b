/**
 * The positions of the failed attempts whose count began again at 1 because the invocation was suspended or cancelled after the
 * previous failure. A resume also restarts the count, but has an event of its own.
 */
export function recounts(events: readonly { type: string; attempts?: number | undefined }[]): Set<number> {
  const out = new Set<number>()
  let before = 0
  events.forEach(({ type, attempts = 0 }, i) => {
    if (type === 'Resumed') before = 0
    if (type !== 'TransientError') return
    if (attempts > 0 && attempts <= before) out.add(i)
    before = attempts
  })
  return out
}
