/** The width of a vertical axis in pixels: its longest label, in 11 px type, fits. uPlot has no labels before it has data. */
export function axisWidth(labels: readonly string[] | null): number {
  return Math.max(44, 14 + 6.5 * Math.max(0, ...(labels ?? []).map((l) => l.length)))
}
