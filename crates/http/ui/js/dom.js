// Builds nodes from text only: nothing here ever parses HTML.

const SVG = 'http://www.w3.org/2000/svg';
const IN_SVG = new Set(['svg', 'g', 'path', 'polyline', 'polygon', 'line', 'rect', 'circle', 'text', 'title', 'defs', 'use']);

/** @typedef {Node|string|number|null|undefined|false|Child[]} Child */

/**
 * Makes an element. Props: `class`, `on` (listeners), `style` (properties, set one by one because the CSP forbids style
 * attributes), `data` (dataset), `ref` (called with the element); other keys are attributes: `true` sets an empty one,
 * `false`, `null` and `undefined` set none.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>|null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Record<string, any>|null} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props, ...children) {
  return fill(/** @type {SVGElement} */ (document.createElementNS(SVG, tag)), props, children);
}

/**
 * @template {HTMLElement|SVGElement} E
 * @param {E} element
 * @param {Record<string, any>|null|undefined} props
 * @param {Child[]} children
 * @returns {E}
 */
function fill(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (key === 'on') {
      for (const [name, listener] of Object.entries(value)) element.addEventListener(name, listener);
    } else if (key === 'style') {
      for (const [name, to] of Object.entries(value)) element.style.setProperty(name, String(to));
    } else if (key === 'data') {
      Object.assign(element.dataset, value);
    } else if (key === 'ref') {
      value(element);
    } else if (key === 'value' && 'value' in element) {
      /** @type {any} */ (element).value = value;
    } else if (value === true) {
      element.setAttribute(key, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(key, String(value));
    }
  }
  add(element, children);
  return element;
}

/**
 * @param {Node} parent
 * @param {Child[]} children
 */
function add(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces all children.
 * @param {Element} parent
 * @param {...Child} children
 */
export function put(parent, ...children) {
  const fragment = document.createDocumentFragment();
  add(fragment, children);
  parent.replaceChildren(fragment);
}

/**
 * Sets the text of an element, and touches the document only if it differs.
 * @param {Node} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Turns the trees of the pure modules into nodes.
 * @param {import('./types.js').Tree|import('./types.js').Tree[]|null|undefined} tree
 * @returns {Node}
 */
export function nodes(tree) {
  if (tree === null || tree === undefined) return document.createDocumentFragment();
  if (typeof tree === 'string') return document.createTextNode(tree);
  if (Array.isArray(tree)) {
    const fragment = document.createDocumentFragment();
    for (const part of tree) fragment.appendChild(nodes(part));
    return fragment;
  }
  const children = (tree.children ?? []).map(nodes);
  const make = /** @type {(tag: any, props: any, ...children: Node[]) => Node} */ (IN_SVG.has(tree.tag) ? svg : h);
  return make(tree.tag, tree.props, ...children);
}

/**
 * Makes the children of `parent` those of `items`, and keeps the elements of keys that stay.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {{key: (item: T) => string, create: (item: T) => HTMLElement, update?: (element: HTMLElement, item: T) => void}} how
 */
export function keyed(parent, items, { key, create, update }) {
  /** @type {Map<string, HTMLElement>} */
  const old = new Map();
  for (const child of /** @type {HTMLElement[]} */ ([...parent.children])) old.set(child.dataset.key ?? '', child);
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let element = old.get(name);
    if (element) {
      old.delete(name);
      update?.(element, item);
    } else {
      element = create(item);
      element.dataset.key = name;
    }
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  for (const gone of old.values()) gone.remove();
}
