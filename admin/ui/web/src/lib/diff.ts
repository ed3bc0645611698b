// The lines that differ between two texts.

export interface DiffLine {
  kind: 'same' | 'add' | 'remove'
  text: string
}

/** Above this product of line counts the texts are compared as a whole. */
const limit = 4_000_000

/** A shortest list of removed and added lines. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const x = a.slice(head, a.length - tail)
  const y = b.slice(head, b.length - tail)
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [...a.slice(0, head).map(same), ...middle(x, y), ...a.slice(a.length - tail).map(same)]
}

function middle(a: string[], b: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'remove', text })
  const added = (text: string): DiffLine => ({ kind: 'add', text })
  if (a.length * b.length > limit || a.length === 0 || b.length === 0) return [...a.map(removed), ...b.map(added)]
  // Lengths of longest common subsequences of the rests.
  const width = b.length + 1
  const table = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1]! + 1 : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!)
    }
  }
  const out: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push({ kind: 'same', text: a[i]! })
      i++
      j++
    } else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) out.push(removed(a[i++]!))
    else out.push(added(b[j++]!))
  }
  return [...out, ...a.slice(i).map(removed), ...b.slice(j).map(added)]
}
