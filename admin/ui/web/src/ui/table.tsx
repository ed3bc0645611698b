// Dense tables with a sticky header, rows that are links, and selection by keyboard.

import { Fragment, type ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { navigate } from '../router.ts'

export interface Column<T> {
  id: string
  title: ComponentChildren
  cell: (row: T) => ComponentChildren
  /** The order of which this column is the heading. */
  sort?: string
  /** A CSS class: num aligns to the right, fit is as narrow as its content. */
  class?: string
}

interface Props<T> {
  columns: Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
  hrefOf?: (row: T) => string | undefined
  label: string
  selected?: ReadonlySet<string>
  onSelect?: (keys: ReadonlySet<string>) => void
  tone?: (row: T) => string | undefined
  dim?: boolean
  /** What is shown below a row, if it is unfolded. */
  detail?: (row: T) => ComponentChildren
  sorted?: { by: string; ascending: boolean }
  onSort?: (by: string, ascending: boolean) => void
}

/** Commands of the keyboard for the table on the page. */
export interface TableKeys {
  move: (by: number) => void
  open: () => void
  toggle: () => void
}
export const tableKeys: { current: TableKeys | undefined } = { current: undefined }

export function Table<T>({ columns, rows, keyOf, hrefOf, label, selected, onSelect, tone, dim, detail, sorted, onSort }: Props<T>) {
  const [cursor, setCursor] = useState<string>()
  const anchor = useRef<string | undefined>(undefined)
  const body = useRef<HTMLTableSectionElement>(null)
  const state = useRef({ rows, cursor, selected })
  state.current = { rows, cursor, selected }

  const toggle = (key: string, range = false): void => {
    if (!onSelect) return
    const next = new Set(state.current.selected)
    const from = rows.findIndex((r) => keyOf(r) === anchor.current)
    const to = rows.findIndex((r) => keyOf(r) === key)
    if (range && from >= 0 && to >= 0) {
      for (let i = Math.min(from, to); i <= Math.max(from, to); i++) next.add(keyOf(rows[i]!))
    } else if (next.has(key)) next.delete(key)
    else next.add(key)
    anchor.current = key
    onSelect(next)
  }
  const actions = useRef<TableKeys>({ move: () => undefined, open: () => undefined, toggle: () => undefined })
  actions.current = {
    move: (by) => {
      if (rows.length === 0) return
      const at = rows.findIndex((r) => keyOf(r) === cursor)
      const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))
      setCursor(keyOf(rows[next]!))
      body.current?.querySelectorAll(':scope > tr:not(.below)')[next]?.scrollIntoView({ block: 'nearest' })
    },
    open: () => {
      const row = rows.find((r) => keyOf(r) === cursor)
      const to = row && hrefOf?.(row)
      if (to) navigate(to)
    },
    toggle: () => {
      if (cursor !== undefined) toggle(cursor)
    },
  }
  useEffect(() => {
    const mine: TableKeys = { move: (by) => actions.current.move(by), open: () => actions.current.open(), toggle: () => actions.current.toggle() }
    tableKeys.current = mine
    return () => {
      if (tableKeys.current === mine) tableKeys.current = undefined
    }
  }, [])
  const all = onSelect && rows.length > 0 && rows.every((r) => selected?.has(keyOf(r)))
  return (
    <div class={`table-wrap${dim ? ' dim' : ''}`} {...(hrefOf ? {} : { tabIndex: 0, role: 'group', 'aria-label': label })}>
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            {onSelect && (
              <th class="sel" scope="col">
                <input type="checkbox" aria-label="Select all on this page" checked={all ?? false} onChange={() => onSelect(all ? new Set() : new Set(rows.map(keyOf)))} />
              </th>
            )}
            {columns.map((c) => {
              const on = c.sort !== undefined && sorted?.by === c.sort
              return (
                <th key={c.id} scope="col" class={`c-${c.id} ${c.class ?? ''}`} aria-sort={on ? (sorted.ascending ? 'ascending' : 'descending') : undefined}>
                  {c.sort !== undefined && onSort
                    ? <button type="button" class="sort" title={on ? 'Reverse the order' : `Sort by ${String(c.title).toLowerCase()}`} onClick={() => onSort(c.sort!, on ? !sorted.ascending : false)}>{c.title}<span class={`sort-mark${on ? ' on' : ''}${on && sorted.ascending ? ' up' : ''}`} aria-hidden="true" /></button>
                    : c.title}
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row) => {
            const key = keyOf(row)
            const to = hrefOf?.(row)
            const on = selected?.has(key) ?? false
            const below = detail?.(row)
            return (
              <Fragment key={key}>
                <tr class={`${to ? 'goes' : ''}${cursor === key ? ' cursor' : ''}${on ? ' on' : ''} ${tone?.(row) ?? ''}`}
                  onClick={(e) => {
                    if (!to || (e.target as Element).closest('a,button,input,label')) return
                    if (getSelection()?.toString()) return
                    if (e.metaKey || e.ctrlKey) window.open(to, '_blank', 'noopener')
                    else navigate(to)
                  }}>
                  {onSelect && (
                    <td class="sel">
                      <input type="checkbox" aria-label={`Select ${key}`} checked={on} onClick={(e) => {
                        e.stopPropagation()
                        toggle(key, e.shiftKey)
                      }} />
                    </td>
                  )}
                  {columns.map((c) => <td key={c.id} class={`c-${c.id} ${c.class ?? ''}`}>{c.cell(row)}</td>)}
                </tr>
                {below && <tr class="below"><td colSpan={columns.length + (onSelect ? 1 : 0)}>{below}</td></tr>}
              </Fragment>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
