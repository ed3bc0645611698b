// @ts-check
const base = process.env.RECORDER;

/**
 * Reports a side effect and returns how many were reported under this name.
 *
 * @param {string} name
 * @param {string} value
 * @returns {Promise<number>}
 */
export async function record(name, value) {
  return Number(await ask("POST", `/record/${name}`, value));
}

/**
 * Returns when the test has opened the gate; no name means no gate.
 *
 * @param {string | undefined} gate
 */
export async function wait(gate) {
  if (gate) await ask("GET", `/gate/${gate}`);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {string} [body]
 */
async function ask(method, path, body) {
  const response = await fetch(base + path, { method, body });
  const text = await response.text();
  if (!response.ok) throw new Error(`recorder: ${response.status} ${text}`);
  return text;
}
