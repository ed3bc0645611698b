// An editor for SQL and JSON, by CodeMirror. It lives in a shadow root: there its styles are constructed style sheets,
// which the content security policy allows, and not style elements.

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { SQLite, sql } from '@codemirror/lang-sql'
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { linter } from '@codemirror/lint'
import { Compartment, EditorState, Prec } from '@codemirror/state'
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags as t } from '@lezer/highlight'

export interface EditorOptions {
  value: string
  language: 'sql' | 'json'
  label: string
  dark: boolean
  placeholder?: string
  schema?: Record<string, { label: string; detail?: string; info?: string }[]>
  onChange?: (value: string) => void
  onSubmit?: () => void
  minHeight?: string
  maxHeight?: string
  readOnly?: boolean
}

export interface Editor {
  get: () => string
  set: (value: string) => void
  focus: () => void
  setDark: (dark: boolean) => void
  setSchema: (schema: EditorOptions['schema']) => void
  select: (line: number, column: number) => void
  destroy: () => void
}

const highlight = HighlightStyle.define([
  { tag: [t.keyword, t.operatorKeyword], color: 'var(--accent-text)', fontWeight: '600' },
  { tag: [t.string, t.special(t.string)], color: 'var(--ok)' },
  { tag: [t.number, t.bool, t.null], color: 'var(--busy)' },
  { tag: [t.lineComment, t.blockComment], color: 'var(--faint)', fontStyle: 'italic' },
  { tag: [t.propertyName, t.typeName, t.name], color: 'var(--text)' },
  { tag: [t.operator, t.punctuation, t.bracket], color: 'var(--muted)' },
])

function look(dark: boolean, o: EditorOptions) {
  return EditorView.theme({
    '&': { color: 'var(--text)', backgroundColor: 'var(--panel)', fontSize: '12.5px', minHeight: o.minHeight ?? '96px', maxHeight: o.maxHeight ?? '50vh' },
    '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-1px' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto', minHeight: o.minHeight ?? '96px' },
    '.cm-content': { caretColor: 'var(--text)', padding: '8px 0' },
    '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--faint)', border: 'none' },
    '.cm-activeLine': { backgroundColor: 'var(--hover)' },
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--select)' },
    '.cm-cursor': { borderLeftColor: 'var(--text)' },
    '.cm-tooltip': { backgroundColor: 'var(--panel)', color: 'var(--text)', border: '1px solid var(--line-strong)', borderRadius: '6px', boxShadow: 'var(--shadow)' },
    '.cm-tooltip-autocomplete > ul > li': { padding: '3px 8px', fontFamily: 'var(--mono)', fontSize: '12px' },
    '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
    '.cm-completionDetail': { color: 'inherit', opacity: '.75', fontStyle: 'normal', marginLeft: '12px' },
    '.cm-placeholder': { color: 'var(--faint)' },
    '.cm-diagnostic': { padding: '4px 8px' },
  }, { dark })
}

// insertText enters typed text. If the browser did so, it would copy the style of the text around it into style
// attributes, which the content security policy forbids and reports. Text that is composed (input methods) is left to it.
function insertText(e: InputEvent, view: EditorView): boolean {
  if (e.inputType !== 'insertText' || !e.data || e.isComposing || view.state.readOnly) return false
  const text = e.data
  const { from, to } = view.state.selection.main
  const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: 'input.type', scrollIntoView: true })
  if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert())
  e.preventDefault()
  return true
}

const problems = jsonParseLinter()

export function mount(parent: HTMLElement, o: EditorOptions): Editor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' })
  root.replaceChildren()
  const theme = new Compartment()
  const language = new Compartment()
  const languageOf = (schema: EditorOptions['schema']) => o.language === 'sql'
    ? sql({ dialect: SQLite, upperCaseKeywords: true, ...(schema ? { schema } : {}) })
    : [json(), linter((v) => (v.state.doc.length === 0 ? [] : problems(v)), { delay: 400 })]
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: o.value,
      extensions: [
        Prec.highest(keymap.of([
          { key: 'Mod-Enter', run: () => { o.onSubmit?.(); return true } },
          { key: 'Tab', run: acceptCompletion },
          { key: 'Ctrl-Space', run: startCompletion },
        ])),
        lineNumbers(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(),
        autocompletion({ icons: false, maxRenderedOptions: 60 }),
        EditorView.lineWrapping,
        syntaxHighlighting(highlight),
        // Tab is not among them: it leaves the editor, as every other field.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        EditorView.domEventHandlers({ beforeinput: insertText }),
        EditorView.contentAttributes.of({ 'aria-label': o.label }),
        o.placeholder ? placeholder(o.placeholder) : [],
        EditorState.readOnly.of(o.readOnly ?? false),
        theme.of(look(o.dark, o)),
        language.of(languageOf(o.schema)),
        EditorView.updateListener.of((u) => {
          if (u.docChanged) o.onChange?.(u.state.doc.toString())
        }),
      ],
    }),
  })
  return {
    get: () => view.state.doc.toString(),
    set: (value) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } }),
    focus: () => view.focus(),
    setDark: (dark) => view.dispatch({ effects: theme.reconfigure(look(dark, o)) }),
    setSchema: (schema) => view.dispatch({ effects: language.reconfigure(languageOf(schema)) }),
    select: (line, column) => {
      if (line < 1 || line > view.state.doc.lines) return
      const at = view.state.doc.line(line)
      view.dispatch({ selection: { anchor: Math.min(at.to, at.from + Math.max(0, column - 1)) }, scrollIntoView: true })
      view.focus()
    },
    destroy: () => view.destroy(),
  }
}
