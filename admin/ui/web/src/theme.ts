// Sets the chosen theme before the first paint.

try {
  const theme = JSON.parse(localStorage.getItem('ui.theme') ?? '"system"') as string
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // no storage: the system decides
}
export {}
