import { blank } from '../ui.js';

/** @type {import('../types.js').View} */
export const approvals = {
  title: 'Approvals',
  mount(root) {
    root.append(blank('This view is being built.'));
  },
};
