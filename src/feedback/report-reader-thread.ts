import { parentPort } from 'node:worker_threads';
import { readFeedbackEvents } from './read/read-feedback-events.ts';
import { serveJobs } from './thread-reader.ts';

serveJobs(parentPort, readFeedbackEvents);
