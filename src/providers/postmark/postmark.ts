/** Postmark, https://postmarkapp.com. */
import type { Provider } from '../provider.ts';
import { POSTMARK_EVENTS } from './events.ts';
import { POSTMARK_RELAY } from './profile.ts';

export const POSTMARK: Provider = {
  name: 'postmark',
  title: 'Postmark',
  relay: POSTMARK_RELAY,
  events: POSTMARK_EVENTS,
};
