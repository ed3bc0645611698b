// Steps of a chart without values: short gaps of sparse series are drawn over, long ones are not.

/** The longest gap that is drawn over, in steps. */
export const drawnOver = 6

/** The indexes of values to whose neighbours no line is drawn: without a point they would be invisible. */
export function isolated(values: readonly (number | null | undefined)[], connect: boolean): number[] {
  const reach = connect ? drawnOver : 1
  const known = values.flatMap((v, i) => (v === null || v === undefined ? [] : [i]))
  return known.filter((at, i) => at - (known[i - 1] ?? -Infinity) > reach && (known[i + 1] ?? Infinity) - at > reach)
}

/** Of gaps in pixels those that are too long to be drawn over; step is the width of a step. */
export function longGaps(gaps: readonly [number, number][], step: number): [number, number][] {
  return gaps.filter(([from, to]) => to - from > (drawnOver + 0.5) * step)
}
