import { blank } from '../ui.js';

/** @type {import('../types.js').View} */
export const session = {
  title: 'Session',
  mount(root) {
    root.append(blank('This view is being built.'));
  },
};
