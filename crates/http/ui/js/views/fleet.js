import { blank } from '../ui.js';

/** @type {import('../types.js').View} */
export const fleet = {
  title: 'Fleet',
  mount(root) {
    root.append(blank('This view is being built.'));
  },
};
