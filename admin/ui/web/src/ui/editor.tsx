// The editor, loaded when it is first shown. Until then, and if it cannot be loaded, a plain text area does.

import { useEffect, useRef, useState } from 'preact/hooks'
import { loadEditor } from '../lazy-load.ts'
import type { Editor as Mounted, EditorOptions } from '../lazy/editor.ts'
import { isDark } from '../prefs.ts'

export type EditorHandle = Mounted

interface Props extends Omit<EditorOptions, 'dark'> {
  handle?: (editor: Mounted | undefined) => void
}

export function Editor({ handle, ...o }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<Mounted | undefined>(undefined)
  const text = useRef(o.value)
  const [ready, setReady] = useState(false)
  const latest = useRef(o)
  latest.current = o
  const dark = isDark()
  useEffect(() => {
    if (ready) handle?.(editor.current) // it is visible now, so it can be focused
  }, [ready])
  useEffect(() => {
    let gone = false
    loadEditor().then((m) => {
      if (gone || !host.current) return
      editor.current = m.mount(host.current, {
        ...latest.current, value: text.current, dark: isDark(),
        onChange: (v) => {
          text.current = v
          latest.current.onChange?.(v)
        },
        onSubmit: () => latest.current.onSubmit?.(),
      })
      setReady(true)
    }, () => undefined)
    return () => {
      gone = true
      editor.current?.destroy()
      handle?.(undefined)
    }
  }, [])
  useEffect(() => editor.current?.setDark(dark), [dark])
  useEffect(() => {
    if (o.schema) editor.current?.setSchema(o.schema)
  }, [o.schema, ready])
  return (
    <div class="editor">
      {!ready && <textarea class="input mono editor-plain" aria-label={o.label} rows={4} value={text.current} placeholder={o.placeholder} onInput={(e) => {
        text.current = e.currentTarget.value
        o.onChange?.(text.current)
      }} />}
      <div ref={host} class={ready ? 'editor-host' : 'editor-host hidden'} />
    </div>
  )
}
