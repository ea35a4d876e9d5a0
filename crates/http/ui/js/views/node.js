import { blank } from '../ui.js';

/** @type {import('../types.js').View} */
export const node = {
  title: 'Node',
  mount(root) {
    root.append(blank('This view is being built.'));
  },
};
