// Types that several modules share. The shapes are those of docs/protocol.md; only what the page reads is here.

/**
 * @typedef {{input: number, output: number, cache_read: number, cache_write: number, reasoning: number}} Usage
 * @typedef {Record<string, string>} Labels
 * @typedef {{session: string, fault?: {message: string, hint?: string}}} BulkOutcome
 * @typedef {{tokens: number, usd: number, time_ms: number, steps: number}} Budget
 */

/**
 * A row of `session.list`.
 * @typedef {object} Row
 * @property {string} session
 * @property {string} name
 * @property {string} state
 * @property {string} reason
 * @property {string} since
 * @property {string} [until]
 * @property {number} [attempt]
 * @property {number} [position]
 * @property {string} model
 * @property {string} mode
 * @property {string} workdir
 * @property {Labels} labels
 * @property {number} seq
 * @property {number} steps
 * @property {Usage} usage
 * @property {number} cost_usd
 * @property {string} created_at
 * @property {string} updated_at
 * @property {string|null} [parent]
 * @property {string|null} [turn]
 * @property {Approval[]} open_approvals
 * @property {{input: string, delivery: string, preview: string, at: string}[]} queue
 * @property {Budget} budget
 * @property {{class?: string, message: string}|null} [last_error]
 * @property {number} time_ms
 * @property {boolean} [paused]
 * @property {string} [last] what happened last, from the stream; not a key of the daemon
 */

/**
 * A row of `approval.list`.
 * @typedef {object} Approval
 * @property {string} approval
 * @property {string} kind
 * @property {string} session
 * @property {string} [tool_call]
 * @property {string} [tool]
 * @property {string} title
 * @property {string} detail
 * @property {{id: string, label: string}[]} choices
 * @property {string[]} scopes
 * @property {string} asked_at
 * @property {string} [expires_at]
 * @property {string} [grant]
 * @property {string} [input]
 * @property {string} [root]
 * @property {string[]} [path]
 * @property {number} [level]
 * @property {Record<string, any>} [about]
 */

/**
 * An event of a log. The further keys depend on the type.
 * @typedef {{session: string, seq: number, at: string, by: string, turn?: string, type: string} & Record<string, any>} LogEvent
 */

/**
 * What happens on a stream: `event` has no name for events of the log.
 * @typedef {{id: string|null, event: string, data: any}} Message
 */

/**
 * The state of a connection. `waiting`: it retries at `retryAt`. `signed-out`: the token is not valid any more.
 * @typedef {{state: 'connecting'|'live'|'waiting'|'paused'|'signed-out', retryAt?: number, attempts?: number, why?: string}} Connection
 */

/**
 * Who uses the page.
 * @typedef {{name: string, scopes: string[]|null, expires_at?: string|null, labels?: Labels}} Person
 */

/**
 * A pure description of nodes, as the modules in `text/` return it.
 * @typedef {string|{tag: string, props?: Record<string, any>|null, children?: Tree[]}} Tree
 */

/**
 * What a view gets.
 * @typedef {object} Context
 * @property {import('./client.js').Client} client
 * @property {import('./store.js').Store} store
 * @property {(hash: string, options?: {replace?: boolean}) => void} navigate
 * @property {(scope: string) => boolean} can whether the token has a scope; true if the scopes are unknown
 * @property {(keys: Record<string, {help: string, run: (event: KeyboardEvent) => void}>) => () => void} keys
 * @property {(title: string) => void} title sets the title of the window
 */

/**
 * `path` are the parts of the fragment after the view's name, `query` its parameters.
 * @typedef {{path: string[], query: URLSearchParams}} Params
 */

/**
 * @typedef {object} View
 * @property {string} title
 * @property {(root: HTMLElement, ctx: Context, params: Params) => (void | (() => void) | Mounted)} mount
 */

/**
 * A view that wants to know when only its parameters change. Without `update` it is mounted again.
 * @typedef {{dispose: () => void, update: (params: Params) => void}} Mounted
 */

export {};
