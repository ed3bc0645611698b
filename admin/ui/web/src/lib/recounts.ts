/**
 * The positions of the failed attempts that are counted from 1 again because the invocation was suspended or cancelled after the
 * failure before. After a resume they are as well, which the event of the resume explains.
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
