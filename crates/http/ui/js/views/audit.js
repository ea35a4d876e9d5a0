import { blank } from '../ui.js';

/** @type {import('../types.js').View} */
export const audit = {
  title: 'Audit',
  mount(root) {
    root.append(blank('This view is being built.'));
  },
};
