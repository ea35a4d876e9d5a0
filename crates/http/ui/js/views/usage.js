import { blank } from '../ui.js';

/** @type {import('../types.js').View} */
export const usage = {
  title: 'Usage',
  mount(root) {
    root.append(blank('This view is being built.'));
  },
};
