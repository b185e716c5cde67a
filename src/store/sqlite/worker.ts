/** The module a store thread runs. It is started by store.ts and never imported. */
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from './database.ts';
import type { ThreadData } from './thread.ts';
import { serveThread } from './thread.ts';

if (parentPort !== null) serveThread(parentPort, workerData as ThreadData, openDatabase);
