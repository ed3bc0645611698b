// The problems of a cluster as few lines.

/** Joins "partition 0 has no leader", "partition 1 has no leader" into one line. Others are unchanged. */
export function groupProblems(problems: readonly string[]): string[] {
  const partitions = new Map<string, string[]>()
  const lines: string[] = []
  for (const p of problems) {
    const m = /^partition (\d+) (has no leader)$/.exec(p)
    if (!m) {
      lines.push(p)
      continue
    }
    const same = partitions.get(m[2]!)
    if (same) same.push(m[1]!)
    else {
      partitions.set(m[2]!, [m[1]!])
      lines.push(m[2]!)
    }
  }
  return lines.map((l) => {
    const ids = partitions.get(l)
    if (!ids) return l
    if (ids.length === 1) return `partition ${ids[0]} ${l}`
    const shown = ids.length > 8 ? [...ids.slice(0, 6), `${ids.length - 6} more`] : ids
    return `partitions ${shown.slice(0, -1).join(', ')} and ${shown[shown.length - 1]} have no leader`
  })
}
