// Loads chart.js and editor.js when a page needs them. They have the version of app.js.

const version = new URL(import.meta.url).searchParams.get('v') ?? ''
const loaded = new Map<string, Promise<unknown>>()

function lazy<T>(name: string): Promise<T> {
  let module = loaded.get(name)
  if (!module) {
    module = import(`/ui/${name}?v=${version}`) as Promise<unknown>
    module.catch(() => loaded.delete(name))
    loaded.set(name, module)
  }
  return module as Promise<T>
}

export const loadChart = (): Promise<typeof import('./lazy/chart.ts')> => lazy('chart.js')
export const loadEditor = (): Promise<typeof import('./lazy/editor.ts')> => lazy('editor.js')
